"""The wiring: settings, addresses, the worker, and the one command that runs it all."""

from previously_site.celery import app as celery_app

__all__ = ["celery_app"]
