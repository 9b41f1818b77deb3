"""Where policies in git may be read from, as the environment says."""

from __future__ import annotations

import pytest

from costguard.domain.errors import InvalidInputError
from costguard.settings import load_settings


def test_no_host_is_allowed_unless_it_is_named() -> None:
    assert load_settings({}).git_hosts == ()
    assert load_settings({"COSTGUARD_GIT_HOSTS": " GitHub.com, private:git.corp.example:8443 ,"}).git_hosts == (
        "github.com",
        "private:git.corp.example:8443",
    )


@pytest.mark.parametrize("hosts", ["*", "*.example.com", "https://github.com", "a b", "u@h", "private:", "h:", "-x"])
def test_what_is_no_host_is_refused(hosts: str) -> None:
    with pytest.raises(InvalidInputError, match=r"COSTGUARD_GIT_HOSTS names .*, expected such as github\.com"):
        load_settings({"COSTGUARD_GIT_HOSTS": hosts})


@pytest.mark.parametrize(
    ("mark", "host"),
    [("AWS_LAMBDA_FUNCTION_NAME", "lambda"), ("FC_FUNCTION_NAME", "fc"), ("TENCENTCLOUD_RUNENV", "scf")],
)
@pytest.mark.parametrize("policy", ["git:main", "git+https://github.com/acme/policy@main"])
def test_a_function_does_not_start_with_a_policy_in_git(mark: str, host: str, policy: str) -> None:
    assert load_settings({"COSTGUARD_POLICY": policy}).policy == policy
    with pytest.raises(InvalidInputError, match=f"COSTGUARD_POLICY is in git, which host {host} does not read"):
        load_settings({"COSTGUARD_POLICY": policy, mark: "1"})
