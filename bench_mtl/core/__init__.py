"""The ground floor: small frozen types, errors, checks of arguments, designs, threads, files, and how loops are compiled."""
