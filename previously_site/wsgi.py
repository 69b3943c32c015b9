"""The web application for a WSGI server such as the one of `runserver`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "previously_site.settings")

application = get_wsgi_application()
