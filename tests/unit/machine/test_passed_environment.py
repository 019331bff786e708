"""Secrets of the environment are not handed on, and what frameworks read is."""

from __future__ import annotations

import pytest
from fairlap.errors import InvalidRequest
from fairlap.machine.programs.passed_environment import handed_on, require_confirmed

SECRETS = [
    "GITHUB_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_PROFILE",
    "AZURE_CLIENT_SECRET",
    "AZURE_TENANT_ID",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "NPM_TOKEN",
    "DB_PASSWORD",
    "PGPASSWORD",
    "APP_SECRET",
    "WANDB_API_KEY",
    "FAIRLAP_STORE",
    "FAIRLAP_SERVE_TOKEN",
    "SSH_KEY_PASSPHRASE",
    "github_token",
    "UV_INDEX_OWN_PASSWORD",
    "MYSQL_PWD",
    "REDISCLI_AUTH",
    "NPM_CONFIG__AUTH",
    "CI_JOB_JWT",
    "SENTRY_DSN",
    "SLACK_WEBHOOK_URL",
    "DOCKER_AUTH_CONFIG",
    "MINIO_ACCESSKEY",
    "PRIVATEKEY",
    "DBPASS",
    "BEARER",
    "X_PRIVATE",
    "SIGNATURE",
]
KEPT = [
    "PATH",
    "HOME",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "CUDA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "TOKENIZERS_PARALLELISM",
    "KERAS_HOME",
    "XLA_FLAGS",
    "PYTHONPATH",
    "FAIRLAP_CACHE",
    "FAIRLAP_WORKER",
    "FAIRLAP_RANKS",
    "SSH_AUTH_SOCK",
    "PWD",
    "OLDPWD",
    "KEYBOARD",
    "MONKEY",
    "PATHEXT",
    "COMPASS",
    "HF_HOME",
    "TF_CPP_MIN_LOG_LEVEL",
    "PASSTHROUGH",
]


def test_tokens_keys_and_passwords_are_left_out() -> None:
    environment = dict.fromkeys([*SECRETS, *KEPT], "value")
    assert list(handed_on(environment)) == KEPT


def test_a_login_in_an_address_is_a_secret_whatever_its_name() -> None:
    environment = {"PLAIN": "http://host/x?a=b:c@d", "URL": "postgresql://me:word@host/x", "USER_URL": "ssh://me@host"}
    assert list(handed_on(environment)) == ["PLAIN", "USER_URL"]


@pytest.mark.parametrize(
    "name", ["GPGKEY", "SSHKEY", "MASTERKEY", "SSHPASS", "TOKEN1", "DB_PW", "DEPLOYKEY", "MYTOKENS", "APIKEYS",
             "PASSWORD2", "CREDS", "GCP_CREDS_JSON", "PGPASS", "PRIVKEY"]
)  # fmt: skip
def test_a_secret_without_a_line_before_its_last_word_is_left_out(name: str) -> None:
    assert handed_on({name: "value"}) == {}


def test_a_private_key_and_a_token_as_the_only_login_of_an_address_are_left_out() -> None:
    pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\n-----END OPENSSH PRIVATE KEY-----"
    assert handed_on({"MINE": pem, "PIP_INDEX_URL": "https://s3cr3ttok@pypi.corp/simple"}) == {}


def test_what_is_named_is_passed() -> None:
    environment = {"HF_TOKEN": "a", "OPENAI_API_KEY": "b"}
    assert handed_on(environment, ["HF_TOKEN"]) == {"HF_TOKEN": "a"}


def test_what_a_plan_passes_has_to_be_confirmed() -> None:
    require_confirmed(["HF_TOKEN"], ["HF_TOKEN", "OTHER"])
    with pytest.raises(InvalidRequest) as refused:
        require_confirmed(["HF_TOKEN", "GITHUB_TOKEN"], ["HF_TOKEN"])
    assert refused.value.code == "E_PASS_ENV"
    assert "--pass-env GITHUB_TOKEN" in str(refused.value)


def test_a_value_that_is_known_for_a_secret_is_not_handed_on() -> None:
    token = "ghp_" + 20 * "a"
    environment = {"PLAIN": token, "PLACE": "https://h/?token=abcdef", "SHELL": "/bin/sh"}
    assert handed_on(environment) == {"SHELL": "/bin/sh"}
