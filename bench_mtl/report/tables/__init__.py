"""Tables of a report, as DataFrames of plain numbers."""
