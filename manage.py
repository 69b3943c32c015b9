#!/usr/bin/env python3
"""Django's command line for Previously. `manage.py serve` runs everything."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "previously_site.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit(
            "Django is not installed here: run .venv/bin/pip install -r requirements.txt,"
            " then .venv/bin/python manage.py serve."
        )
    from previously_site.env import SettingsError

    try:
        execute_from_command_line(sys.argv)
    except SettingsError as error:
        sys.exit(f"Previously cannot start. {error}")


if __name__ == "__main__":
    main()
