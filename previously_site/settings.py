"""Django's settings. What an operator may choose is read by `env.py`; everything else is decided here."""

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from kombu import Exchange, Queue

from previously_site import addresses, env, logs, secret

BASE_DIR = Path(__file__).resolve().parent.parent
PREVIOUSLY = env.read(os.environ, base=BASE_DIR)

DATA_DIR = secret.data_folder(PREVIOUSLY.data_dir)
SECRET_KEY = PREVIOUSLY.secret_key or secret.secret_key(DATA_DIR)
DEBUG = PREVIOUSLY.debug
ALLOWED_HOSTS = list(PREVIOUSLY.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(PREVIOUSLY.trusted_origins)

INSTALLED_APPS = [
    "accounts",
    "memory",
    "previously_site.apps.SiteConfig",
    "previously_site.apps.AdministrationConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
]

MIDDLEWARE = [
    "previously_site.middleware.request_id",
    "previously_site.middleware.security_headers",
    "previously_site.health.probes",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "previously_site.middleware.no_store",
    "accounts.middleware.preferences",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "previously_site.urls"
ASGI_APPLICATION = "previously_site.asgi.application"
WSGI_APPLICATION = "previously_site.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
                "accounts.context.preferences",
            ],
        },
    },
]

# --- what is stored, and where

DATABASES = {"default": addresses.database(PREVIOUSLY.database_url, DATA_DIR)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Sign-in limits count in the cache, so it is shared by every process there is: only `serve` on the memory broker is
# a single one.
if not PREVIOUSLY.worker_inside:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": PREVIOUSLY.broker_url}}
elif sys.argv[1:2] == ["serve"]:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
else:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "cache"}}

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Files are served from where they lie, listed once at the start: nothing to collect, nothing to build.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_MAX_AGE = 0 if DEBUG else 60

# A message at the limit, every character escaped for a form, still reaches the view that explains the limit.
DATA_UPLOAD_MAX_MEMORY_SIZE = max(2_621_440, 12 * PREVIOUSLY.max_message_chars + 1_048_576)

# --- who you are

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ("email", "called")},
    },
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"

ACCOUNT_ADAPTER = "accounts.adapters.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_FORMS = {"signup": "accounts.forms.SignupForm"}
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_METHODS = ["password", "mfa"]
ACCOUNT_EMAIL_SUBJECT_PREFIX = "Previously: "
# An address is proved by a message to it, which takes a server that can send one.
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if PREVIOUSLY.email_url else "none"
ACCOUNT_EMAIL_NOTIFICATIONS = bool(PREVIOUSLY.email_url)
ALLAUTH_TRUSTED_PROXY_COUNT = PREVIOUSLY.trusted_proxies
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "Previously"

SOCIALACCOUNT_ADAPTER = "accounts.adapters.SocialAccountAdapter"
SOCIALACCOUNT_PROVIDERS = {}
OIDC_ORIGIN = ""
if PREVIOUSLY.oidc_issuer:
    _issuer = urlsplit(PREVIOUSLY.oidc_issuer)
    OIDC_ORIGIN = f"{_issuer.scheme}://{_issuer.netloc}"
    # The operator named this issuer, so an address that it has verified is that person's account here too.
    SOCIALACCOUNT_EMAIL_AUTHENTICATION = True
    SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "APPS": [
            {
                "provider_id": "oidc",
                "name": PREVIOUSLY.oidc_name,
                "client_id": PREVIOUSLY.oidc_client_id,
                "secret": PREVIOUSLY.oidc_client_secret,
                "settings": {"server_url": PREVIOUSLY.oidc_issuer},
            }
        ]
    }

globals().update(addresses.email(PREVIOUSLY.email_url))

# --- safety on the wire

X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = PREVIOUSLY.behind_tls
CSRF_COOKIE_HTTPONLY = LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
if PREVIOUSLY.trusted_proxies:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
if PREVIOUSLY.behind_tls:
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
# HSTS for subdomains and preloading bind names that are not ours; the rest is said by our own checks.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

# --- language and time

USE_I18N = USE_TZ = True
LANGUAGE_CODE = PREVIOUSLY.language
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "previously_site" / "locale"]
TIME_ZONE = PREVIOUSLY.time_zone

# --- the worker; what owes what is on disk, so Celery needs neither results nor retries

CELERY_BROKER_URL = "memory://localhost/" if PREVIOUSLY.worker_inside else PREVIOUSLY.broker_url
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # a worker outlives its broker
CELERY_BROKER_CONNECTION_TIMEOUT = 1
# A page waits a second for the broker at most: what it could not hand over is found by the sweep. A worker, which has
# nothing better to do than wait, sets longer times for itself.
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {"polling_interval": 0.02}
    if PREVIOUSLY.worker_inside
    else {"socket_connect_timeout": 0.5, "socket_timeout": 0.5, "max_retries": 0}
)
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_DEFAULT_QUEUE = "memory"
CELERY_TASK_QUEUES = [Queue(name, Exchange(name), routing_key=name) for name in ("replies", "memory")]
CELERY_TASK_ROUTES = {"memory.tasks.answer": {"queue": "replies"}}
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = PREVIOUSLY.replies_at_once
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

LOGGING = logs.configuration(PREVIOUSLY.log_format)
