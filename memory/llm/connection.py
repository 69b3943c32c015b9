"""The `openai` client, set up the way we use it."""

import ipaddress
from urllib.parse import urlsplit

import httpx2
import openai

from memory.llm.settings import ServerSettings

CONNECTIONS = 128  # more than there are answers at once, so that none waits for another


def open_client(settings: ServerSettings) -> openai.AsyncOpenAI:
    """A client with no retries and no timeouts of its own but for connecting: those are ours.

    Proxies and certificates named in the environment apply, except to a model on this very host. Redirects are
    not followed: a redirected POST becomes a GET, and the conversation would go where nobody sent it.
    Raises httpx2.InvalidURL when the address is none.
    """
    http_client = openai.DefaultAsyncHttpxClient(
        limits=httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
        timeout=httpx2.Timeout(None, connect=settings.connect),
        follow_redirects=False,
        trust_env=not _is_this_host(settings.url),
    )
    return openai.AsyncOpenAI(base_url=settings.url, api_key=settings.sent_key, max_retries=0, http_client=http_client)


def _is_this_host(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
