from django.urls import path

from accounts import switches, views

urlpatterns = [
    path("settings/", views.preferences, name="settings"),
    path("settings/looked/", views.looked, name="looked"),
    path("settings/leave/", views.leave, name="leave"),
    path("invited/<str:token>/", views.invited, name="invited"),
    path("first/<str:token>/", views.first_administrator, name="first"),
    path("language/", switches.language, name="language"),
    path("theme/", switches.theme, name="theme"),
]
