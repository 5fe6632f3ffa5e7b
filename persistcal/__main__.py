"""`python -m persistcal` is the command `persistcal`, also where it is not installed."""

from persistcal.command.app import main

if __name__ == "__main__":
    main()
