"""Every declared operation over REST, by a client that is made of the OpenAPI document."""

from __future__ import annotations

from pathlib import Path

from recollect.protocol.operations import REGISTRY
from tests.harness.every_call import documents_of, use_everything
from tests.harness.gateways import GatewayProcess
from tests.harness.processes import OrchestratorProcess
from tests.harness.rest_calling import RestCaller


def test_every_operation_works_over_rest(tmp_path: Path) -> None:
    env = {"RECOLLECT_DOCUMENTS_ROOTS": str(documents_of(tmp_path))}
    with (
        OrchestratorProcess(tmp_path / "data", env=env) as process,
        GatewayProcess(process.data) as gateway,
        gateway.client() as http,
    ):
        caller = RestCaller(http)
        use_everything(caller, tmp_path)
        assert caller.called == set(REGISTRY)
