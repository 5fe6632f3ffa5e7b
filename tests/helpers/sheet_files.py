"""Sheets as a person saves them, from tables."""

from persistcal.store.sheets import read_drawn


def saved_sheet(frame, folder):
    """Write a table as CSV into a folder, and return it as the product reads it."""
    path = folder / "filled.csv"
    frame.to_csv(path, index=False)
    return read_drawn(str(path), list(frame.columns))
