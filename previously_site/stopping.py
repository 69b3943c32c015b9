"""One flag a process: it is set when the process has been told to stop, and everything long looks at it."""

import threading

stopping = threading.Event()
