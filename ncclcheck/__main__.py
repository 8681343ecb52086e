"""`python -m ncclcheck`."""

from ncclcheck.cli.main import main

if __name__ == "__main__":
    main()
