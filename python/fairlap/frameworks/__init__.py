"""One file per framework. Nothing here is imported by the parent process but ``contract`` and ``registry``."""
