"""The transform as one operation with several implementations (:mod:`.operation`), which must all equal :mod:`.reference`."""
