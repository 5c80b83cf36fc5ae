"""The helper: a process beside a JVM that answers its look-ups over a socket, so that no driver needs Python."""
