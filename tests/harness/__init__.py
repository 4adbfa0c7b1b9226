"""What tests are made with."""

import pytest

# It asserts as tests do, and says as much when something is not so.
pytest.register_assert_rewrite("tests.harness.every_call")
