"""The actions of the log, as frozen values and as Arrow columns, and their JSON form."""
