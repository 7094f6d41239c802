"""Documents as Markdown, as HTML that works from disk without a network, and as all files of a report."""
