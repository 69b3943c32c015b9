"""Where everything answers. `/healthz` is answered before any of this."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.urls import include, path

# Signing in to the administration goes through the one sign-in page, with its limits and its second factor.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

urlpatterns = [
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.urls")),
    path("", include("accounts.urls")),
    path("", include("memory.urls")),
]
