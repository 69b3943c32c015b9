#!/bin/sh
# What the container runs: `serve` (web, and with the memory broker the worker too), `web`, `worker`, or any command of
# manage.py.
set -eu
cd "$(dirname "$0")/../.."

case "${1:-serve}" in
serve | web)
    shift || true
    exec python manage.py serve --host 0.0.0.0 --port "${PORT:-8000}" "$@"
    ;;
worker)
    shift
    exec celery -A previously_site worker --loglevel WARNING "$@"
    ;;
*)
    exec python manage.py "$@"
    ;;
esac
