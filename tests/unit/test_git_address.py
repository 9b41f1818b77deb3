"""Addresses of policies in git: what they mean, and what none of them may hold."""

from __future__ import annotations

import pytest

from costguard.adapters.policy_sources.files import GitAddress, Remote, git_address, is_git
from costguard.domain.errors import InvalidInputError


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("git:main", GitAddress("main")),
        ("git:origin/main:policy", GitAddress("origin/main", "policy")),
        ("git:HEAD~1", GitAddress("HEAD~1")),
        ("git:v1.2^{commit}:a/b.yaml", GitAddress("v1.2^{commit}", "a/b.yaml")),
        ("git:@{upstream}:./policy/", GitAddress("@{upstream}", "policy")),
        ("git:main:.", GitAddress("main")),
        (
            "git+https://GitHub.com/acme/policy.git@main",
            GitAddress("main", "", Remote("https", "github.com", 443, "/acme/policy.git")),
        ),
        (
            "git+https://git.example.com:8443/a/b@feature/x#policy",
            GitAddress("feature/x", "policy", Remote("https", "git.example.com", 8443, "/a/b")),
        ),
        (
            "git+ssh://git.example.com/a/b@v1#p/c.yaml",
            GitAddress("v1", "p/c.yaml", Remote("ssh", "git.example.com", 22, "/a/b", "git")),
        ),
        (
            "git+ssh://deploy@git.example.com/a@v1",
            GitAddress("v1", "", Remote("ssh", "git.example.com", 22, "/a", "deploy")),
        ),
    ],
)
def test_an_address_says_revision_path_and_host(written: str, meant: GitAddress) -> None:
    assert is_git(written)
    assert git_address(written) == meant
    assert git_address(meant.shown.replace("git+ssh://", "git+ssh://deploy@", int("deploy" in written))) == meant


@pytest.mark.parametrize(
    "written",
    [
        "git:",
        "git:--upload-pack=x",
        "git:-x:policy",
        "git:a..b",
        "git:a b",
        "git:main\n",
        "git:*",
        "git:main:/etc",
        "git:main:../x",
        "git:main:a//b",
        "git:main:a\\b",
        "git:main:a\nb",
        "git://git.example.com/a@main",
        "git+file:///srv/policy@main",
        "git+ext::sh -c x@main",
        "git+https://git.example.com/a/b",
        "git+https://git.example.com/a/b@",
        "git+https://git.example.com/a/b@-x",
        "git+https://git.example.com/a/b@HEAD~1",
        "git+https://git.example.com/a/b@+main",
        "git+https://git.example.com/a/b@main:refs/x",
        "git+https://git.example.com/a/../b@main",
        "git+https://git.example.com/a=b@main",
        "git+https://-oProxyCommand=x/a@main",
        "git+ssh://-oProxyCommand=x/a@main",
        "git+ssh://git.example.com/-a@main",
        "git+ssh://-l@git.example.com/a@main",
        "git+https://git..example.com/a@main",
        "git+https://git.example.com:0/a@main",
        "git+https://git.example.com:65536/a@main",
        "git+https://[::1]/a@main",
        "git+https://git.example.com/a@main#../x",
        "git+https:/git.example.com/a@main",
    ],
)
def test_what_is_no_address_is_refused(written: str) -> None:
    with pytest.raises(InvalidInputError, match=r"the address of a policy in git is wrong: .*expected git:REV"):
        git_address(written)


@pytest.mark.parametrize(
    "written",
    [
        "git+https://hunter2@git.example.com/a@main",
        "git+https://reader:hunter2@git.example.com/a@main",
        "git+ssh://git:hunter2@git.example.com/a@main",
    ],
)
def test_a_password_is_refused_and_not_repeated(written: str) -> None:
    with pytest.raises(InvalidInputError, match="no user and no password") as raised:
        git_address(written)

    assert "hunter2" not in str(raised.value)


def test_only_the_host_and_port_that_are_listed_are_allowed() -> None:
    plain = Remote("https", "git.example.com", 443, "/a")
    other = Remote("https", "git.example.com", 8443, "/a")

    assert plain.allowed(["git.example.com"])
    assert not plain.may_be_private(["git.example.com"])
    assert plain.allowed(["private:git.example.com"])
    assert plain.may_be_private(["private:git.example.com"])
    assert not plain.allowed([])
    assert not plain.allowed(["example.com", "git.example.com.evil.example"])
    assert not other.allowed(["git.example.com"])
    assert other.allowed(["git.example.com:8443"])


@pytest.mark.parametrize("path", ["policy/", "costguard.yaml", "./git:main", "published:folder", "s3://b/p?region=r"])
def test_other_places_are_no_addresses_in_git(path: str) -> None:
    assert not is_git(path)
