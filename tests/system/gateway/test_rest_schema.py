"""What the OpenAPI document promises is kept, for requests that a machine makes up from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from recollect.gateway.rest.openapi import describe
from recollect.protocol.operations import REGISTRY
from tests.harness.gateways import REST_ALONE, GatewayProcess
from tests.harness.processes import OrchestratorProcess

# A few each, so that all of it takes some seconds; a hunt with twenty each found nothing more.
EXAMPLES = {GenerationMode.POSITIVE: 2, GenerationMode.NEGATIVE: 1}
PROMISES = [
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
# What was made up may have to be waited for, such as a change that never comes.
WAITED_S = "0.3"
AWAITED = {"not_yet_visible", "timeout", "deadline_exceeded", "embedder_unavailable"}
MODULES = sorted({cls.__module__ for cls in REGISTRY.values()})
FEW = settings(
    phases=[Phase.generate],
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    env = {**REST_ALONE, "RECOLLECT_GATEWAY_TIMEOUT_S": "5"}
    data = tmp_path_factory.mktemp("schema") / "data"
    with OrchestratorProcess(data), GatewayProcess(data, env=env) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def operations() -> dict[str, Any]:
    schema = schemathesis.openapi.from_dict(describe())
    found: Iterator[Any] = (result.ok() for result in cast(Any, schema).get_all_operations())
    return {operation.definition.raw["operationId"]: operation for operation in found}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("module", MODULES)
def test_every_answer_is_one_that_the_document_knows(
    gateway: GatewayProcess, operations: dict[str, Any], module: str, mode: GenerationMode
) -> None:
    for name, cls in REGISTRY.items():
        if cls.__module__ != module:
            continue

        @settings(FEW, max_examples=EXAMPLES[mode])
        @given(operations[name].as_strategy(mode))
        def ask(case: Any) -> None:
            answer = case.call(base_url=gateway.url, headers={"X-Recollect-Timeout": WAITED_S})
            case.validate_response(answer, checks=PROMISES)
            if answer.status_code >= 500:
                error = answer.json()["error"]
                assert error["code"] in AWAITED, f"{answer.status_code} {error}"

        # What takes nothing cannot be asked wrongly.
        with suppress(Unsatisfiable):
            ask()
