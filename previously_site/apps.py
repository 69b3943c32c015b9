from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class SiteConfig(AppConfig):
    name = "previously_site"
    label = "site"

    def ready(self) -> None:
        from previously_site import checks  # noqa: F401 - registers the system checks


class AdministrationConfig(AdminConfig):
    default_site = "previously_site.administration.Administration"
