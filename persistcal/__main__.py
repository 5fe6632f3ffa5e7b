"""`python -m persistcal` is the command `persistcal`, also where it is not installed."""

from persistcal.api.command import main

if __name__ == "__main__":
    main()
