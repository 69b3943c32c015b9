from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "previously_site"
    label = "site"

    def ready(self) -> None:
        from previously_site import checks  # noqa: F401 - registers the system checks
