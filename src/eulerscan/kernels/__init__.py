"""The transform as a torch operator (:mod:`.operation`). All implementations must equal :mod:`.reference`."""
