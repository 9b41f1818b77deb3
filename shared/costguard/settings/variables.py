"""Every environment variable this program reads by itself, each once, as docs/settings.md shows them."""

from __future__ import annotations

from dataclasses import dataclass

LANGUAGES = ("en", "zh")
MAIL_VIA = ("smtp", "ses", "directmail")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
SLACK_API_URL = "https://slack.com/api/"
NOTICE_DAYS = 400  # thirteen months: what was said in the same month of the year before can be read
DEFAULT_LEDGER = "sqlite:///costguard.sqlite3"
DEFAULT_NAME = "costguard"
HOSTED_LEDGER = "memory:"  # forgotten with the instance of the function, so that enforcing refuses it


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable; `default` is in words where it is no literal value."""

    name: str
    meaning: str
    default: str = ""
    secret: bool = False


VARIABLES = (
    Variable(
        "COSTGUARD_NAME",
        "What this deployment is called: in its notices, in the clouds' audit logs, and in its log lines and figures, "
        "as `service`; another in the same account or region takes another",
        f"`{DEFAULT_NAME}`",
    ),
    Variable(
        "COSTGUARD_POLICY",
        "File or folder of the policy; or where it is published: `s3://`, `oss://` or "
        "`cos://BUCKET/PREFIX?region=REGION`, or `published:FOLDER`; not in functions also `git:REV[:PATH]` or "
        "`git+https://HOST/OWNER/REPO@REV[#PATH]`",
        "none: observe with the shipped rule",
    ),
    Variable(
        "COSTGUARD_LEDGER",
        "Address of the ledger: `sqlite:///FILE`, `postgresql://…`, `dynamodb://TABLE?region=…`, `memory:`",
        f"`{DEFAULT_LEDGER}`; on a function host `{HOSTED_LEDGER}`, which cannot enforce",
        secret=True,
    ),
    Variable("COSTGUARD_SLACK_TOKEN", "Bot token of the Slack app that sends notices", secret=True),
    Variable("COSTGUARD_SLACK_SIGNING_SECRET", "What Slack signs clicks and commands with", secret=True),
    Variable("COSTGUARD_SLACK_URL", "Address of Slack's Web API", f"`{SLACK_API_URL}`"),
    Variable("COSTGUARD_MAIL_FROM", "Address that mail comes from, such as `costguard@example.com`"),
    Variable(
        "COSTGUARD_MAIL_VIA",
        "What sends mail: `smtp`, `ses` or `directmail`, the latter two with this process's own role",
        "`smtp` where `COSTGUARD_SMTP_URL` is set",
    ),
    Variable(
        "COSTGUARD_SMTP_URL",
        "Mail server: `smtps://USER@HOST:465`, or `smtp://USER@HOST:587`, which must offer STARTTLS",
    ),
    Variable("COSTGUARD_SMTP_PASSWORD", "Password of its user", secret=True),
    Variable("COSTGUARD_WEBHOOK_SECRET", "What webhooks are signed with, 16 letters or more", secret=True),
    Variable(
        "COSTGUARD_WEBHOOK_PRIVATE",
        "`1`: webhooks may reach private addresses, and this machine over http",
        "public addresses only",
    ),
    Variable(
        "COSTGUARD_ROBOTS",
        'Chat robots by the names they have in the policy: `{"feishu:research": {"hook": "https://…", "secret": "…"}}`',
        secret=True,
    ),
    Variable("COSTGUARD_ANSWER_URL", "Public https address of the function `slack_actions`, to which Keep links lead"),
    Variable("COSTGUARD_LINK_SECRET", "What Keep links are signed with, 32 letters or more", secret=True),
    Variable(
        "COSTGUARD_REPORTS",
        "Where digests are kept: a folder, or `s3://`, `oss://` or `cos://BUCKET/PREFIX?region=REGION`",
        "not kept",
    ),
    Variable(
        "COSTGUARD_GIT_HOSTS",
        "Hosts that policies may be read from with `git+https://` and `git+ssh://`, separated by commas, such as "
        "`github.com`; `private:git.corp.example` where its addresses may be private",
        "none",
    ),
    Variable(
        "COSTGUARD_FORGE_TOKEN",
        "Token of GitHub or GitLab by which `costguard exception ask` opens a pull request, and in `idle_gpu` a run "
        "does for what was asked for in a chat; may write contents and pull requests of that repository alone",
        secret=True,
    ),
    Variable(
        "COSTGUARD_FORGE_REPOSITORY",
        "Repository of the policy on GitHub or GitLab in which runs of `idle_gpu` open changes of `exceptions.yaml`: "
        "`https://HOST/OWNER/REPO`, or with the policy's folder `https://HOST/OWNER/REPO//FOLDER`",
        "none",
    ),
    Variable(
        "COSTGUARD_AUDIT_DAYS",
        "Days after which the weekly digest erases what happened in a run from the audit, 90 or more",
        "kept for ever",
    ),
    Variable(
        "COSTGUARD_NOTICE_DAYS",
        "Days after which runs empty the words of a notice that was delivered and whose case is over, 90 or more",
        f"`{NOTICE_DAYS}`",
    ),
    Variable(
        "COSTGUARD_PAUSED",
        "Kill switch of this host: anything but `0`, `false`, `no` or nothing means paused",
        "not paused",
    ),
    Variable("COSTGUARD_LANG", "Language of notices and reports: `en` or `zh`", "`en`"),
    Variable("COSTGUARD_LOG_LEVEL", "Least severe log line written: `DEBUG`, `INFO`, `WARNING`, `ERROR`", "`INFO`"),
    Variable("COSTGUARD_CLOUD", "Cloud scanned where the policy names no account", "`aws`"),
    Variable(
        "COSTGUARD_SANDBOX",
        "Address of a sandbox on this machine, as `costguard sandbox up` prints it: clouds, keys, Slack, ledger and "
        "time are its own, whatever else is set; not in functions",
    ),
    Variable(
        "COSTGUARD_AWS_ROLE",
        "Role assumed in guarded AWS accounts but the credentials' own: an ARN or a name, `{account}` is filled in",
    ),
    Variable("COSTGUARD_AWS_EXTERNAL_ID", "ExternalId sent when assuming that role"),
    Variable("COSTGUARD_ALIBABA_ROLE", "The same for Alibaba Cloud: an ARN (`acs:ram::…`) or a name"),
    Variable("COSTGUARD_ALIBABA_EXTERNAL_ID", "ExternalId sent when assuming that role"),
    Variable("COSTGUARD_ALIBABA_ENDPOINT", "Address that answers instead of every Alibaba Cloud product"),
    Variable("COSTGUARD_TENCENT_ROLE", "The same for Tencent Cloud: an ARN (`qcs::cam::…`) or a name"),
    Variable("COSTGUARD_TENCENT_EXTERNAL_ID", "ExternalId sent when assuming that role"),
    Variable("COSTGUARD_TENCENT_ENDPOINT", "Address that answers instead of every Tencent Cloud product"),
    Variable(
        "COSTGUARD_PROMETHEUS_AUTHORIZATION",
        "Authorization header of the policy's Prometheus servers, such as `Bearer …`; sent over https to "
        "`COSTGUARD_PROMETHEUS_HOSTS`, and nowhere else",
        secret=True,
    ),
    Variable(
        "COSTGUARD_PROMETHEUS_HOSTS",
        "Hosts that may be sent that header, separated by commas, such as `prometheus.example.com:9090`; "
        "`private:prometheus.corp.example` where its addresses may be private; one is not set without the other",
        "none",
    ),
    Variable(
        "COSTGUARD_PACE",
        "`vendor`: ask an address on this machine no faster than the cloud itself, as benchmarks do",
        "a stand-in is asked as fast as it answers",
    ),
    Variable("AWS_PROFILE", "Profile of the AWS configuration files whose credentials are used"),
    Variable("AWS_REGION", "Region where account-wide questions are asked", "the partition's first"),
    Variable("AWS_DEFAULT_REGION", "As `AWS_REGION`, where that is not set"),
    Variable("AWS_ENDPOINT_URL", "Address that answers instead of every AWS service"),
    Variable("ALIBABA_CLOUD_ACCESS_KEY_ID", "Access key for Alibaba Cloud; Function Compute sets it from its role"),
    Variable("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "Its secret", secret=True),
    Variable("ALIBABA_CLOUD_SECURITY_TOKEN", "Its token, where it is temporary", secret=True),
    Variable("ALIYUN_ACCESS_KEY_ID", "Must not be set where Alibaba Cloud is guarded: its SDK prefers this key"),
    Variable("TENCENTCLOUD_SECRETID", "Access key for Tencent Cloud; SCF sets it from its role"),
    Variable("TENCENTCLOUD_SECRETKEY", "Its secret", secret=True),
    Variable("TENCENTCLOUD_SESSIONTOKEN", "Its token, where it is temporary", secret=True),
    Variable("TENCENTCLOUD_SECRET_ID", "As `TENCENTCLOUD_SECRETID`, where that is not set"),
    Variable("TENCENTCLOUD_SECRET_KEY", "As `TENCENTCLOUD_SECRETKEY`, with `TENCENTCLOUD_SECRET_ID`", secret=True),
    Variable("FC_REGION", "Region of the function, whose secret store is read; Function Compute sets it"),
    Variable("TENCENTCLOUD_REGION", "Region of the function, whose secret store is read; SCF sets it"),
    Variable("AWS_LAMBDA_FUNCTION_NAME", "Set by Lambda: the host is `lambda`"),
    Variable("FC_FUNCTION_NAME", "Set by Function Compute: the host is `fc`"),
    Variable("TENCENTCLOUD_RUNENV", "Set by SCF: the host is `scf`"),
)
"""Every variable this program reads by itself. The SDKs read others, such as credentials."""

HOST_MARKS = (
    ("AWS_LAMBDA_FUNCTION_NAME", "lambda"),
    ("FC_FUNCTION_NAME", "fc"),
    ("TENCENTCLOUD_RUNENV", "scf"),
)
