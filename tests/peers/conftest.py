collect_ignore = ["adapters"]  # a stand-in of pyect, which would hide the package
