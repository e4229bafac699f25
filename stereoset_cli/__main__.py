"""python -m stereoset_cli COMMAND …"""

from stereoset_cli.main import main

if __name__ == "__main__":
    main()
