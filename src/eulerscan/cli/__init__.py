"""The command line, ``eulerscan COMMAND``: a module for each command. The only part of the library that prints."""
