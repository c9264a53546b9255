"""Stores on Hadoop's file systems, through Hadoop's own client in a JVM: that of the session, or one of the process."""
