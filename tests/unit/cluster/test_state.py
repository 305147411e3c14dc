"""``cluster.json`` speaks for its own folder only."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from kubedra.cluster.state import Running, read_state, write_state
from kubedra.node.runtime.identity import folder_id, identify


def test_a_copied_folder_does_not_claim_the_cluster_of_the_original(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    main = identify(os.getpid())
    assert main is not None
    write_state(folder, Running("https://x", "k", "t", main, folder=folder_id(folder)))
    shutil.copytree(folder, tmp_path / "copy")
    assert read_state(tmp_path / "copy") is None
    folder.rename(tmp_path / "moved")
    found = read_state(tmp_path / "moved")
    assert found is not None and found.main == main
