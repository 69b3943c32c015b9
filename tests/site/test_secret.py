"""The secret key is made once, for its owner alone, however many processes start at once."""

import stat
import threading
from multiprocessing import get_context

import pytest

from previously_site.env import SettingsError
from previously_site.secret import data_folder, secret_key


def test_it_works(tmp_path):
    folder = data_folder(tmp_path / "data")
    key = secret_key(folder)
    assert len(key) > 60
    assert secret_key(folder) == key
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "secret_key").stat().st_mode) == 0o600


def test_threads_that_start_at_once_read_one_key(tmp_path):
    for attempt in range(20):
        folder = data_folder(tmp_path / str(attempt))
        keys: list[str] = []
        line = threading.Barrier(8)

        def start(folder=folder, keys=keys, line=line):
            line.wait()
            keys.append(secret_key(folder))

        threads = [threading.Thread(target=start) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(keys) == 8
        assert len(set(keys)) == 1
        assert [path.name for path in folder.iterdir()] == ["secret_key"]


def test_processes_that_start_at_once_read_one_key(tmp_path):
    with get_context("spawn").Pool(4) as pool:
        keys = pool.map(secret_key, [tmp_path] * 8)
    assert len(set(keys)) == 1


def test_a_key_that_is_too_short_is_refused(tmp_path):
    (tmp_path / "secret_key").write_text("short\n")
    with pytest.raises(SettingsError, match="delete the file"):
        secret_key(tmp_path)


def test_a_data_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="PREVIOUSLY_DATA_DIR"):
        data_folder(tmp_path / "file" / "data")
