"""The report of `matrix`: for people, for spreadsheets, and as files of other programs (pure)."""
