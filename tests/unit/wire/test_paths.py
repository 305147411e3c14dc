"""Agent and drivers find each other's folders, and a socket path that the kernel refuses is refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubedra.wire.paths import NodePaths, SocketPathTooLong, check_socket_path, default_run_dir, make_private


def test_files_lie_in_the_data_folder_and_sockets_in_the_run_folder(tmp_path: Path) -> None:
    paths = NodePaths(tmp_path / "data", tmp_path / "run", "node-1")
    paths.create()
    assert paths.cdi_dir == tmp_path / "data" / "nodes" / "node-1" / "cdi"
    assert paths.registration_socket("gpu.example.com").parent == tmp_path / "run" / "node-1" / "reg"
    for folder in (paths.plugins_registry_dir, paths.checkpoint_dir, paths.device_plugins_dir):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_long_node_and_driver_names_get_short_sockets() -> None:
    paths = NodePaths(Path("/data"), Path("/run/user/1000/kubedra/0123456789"), "n" * 253)
    other = NodePaths(Path("/data"), Path("/run/user/1000/kubedra/0123456789"), "n" * 252)
    assert len(str(paths.service_socket("d" * 63))) <= 107
    assert paths.service_socket("d" * 63) != other.service_socket("d" * 63)
    assert paths.service_socket("d" * 63) != paths.service_socket("d" * 62)


def test_a_socket_path_over_107_bytes_is_refused_in_a_sentence() -> None:
    assert check_socket_path(Path("/" + "a" * 106))
    with pytest.raises(SocketPathTooLong, match=r"is 108 bytes long and the kernel allows 107: choose a shorter"):
        check_socket_path(Path("/" + "a" * 107))


def test_the_run_folder_depends_on_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    first, second = default_run_dir(Path("/a")), default_run_dir(Path("/b"))
    assert first != second and first.parent == tmp_path / "kubedra" and first == default_run_dir(Path("/a"))
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert default_run_dir(Path("/a")).parent.name.startswith("kubedra-")


def test_private_folders_are_created_below_existing_ones(tmp_path: Path) -> None:
    made = make_private(tmp_path / "a" / "b")
    assert made.stat().st_mode & 0o777 == 0o700 and (tmp_path / "a").stat().st_mode & 0o777 == 0o700
