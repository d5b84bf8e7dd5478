# ModelFlare: the failure matrix of docs/policies.md, as it is, in front of two
# protocols.
#
# As it stands the file runs against "fourgate sim -listen 127.0.0.1:9101".

server {
  listen       = env("MODELFLARE_LISTEN", "127.0.0.1:8080")
  admin_listen = env("MODELFLARE_ADMIN_LISTEN", "127.0.0.1:8081")
}

classifier "openai" {
  module = "builtin:openai"
}

classifier "anthropic" {
  module = "builtin:anthropic"
}

provider "a" {
  base_url   = env("MODELFLARE_A_URL", "http://127.0.0.1:9101/a/v1")
  classifier = classifier.openai
  key "main" { secret = env("MODELFLARE_A_KEY", "sim-key") }
  timeouts {
    headers = "20s"
  }
}

provider "b" {
  base_url   = env("MODELFLARE_B_URL", "http://127.0.0.1:9101/b/v1")
  classifier = classifier.openai
  key "main" { secret = env("MODELFLARE_B_KEY", "sim-key") }
  timeouts {
    headers = "20s"
  }
}

# The same model under a deployment's own name: send_as says what to send, serves states
# that it is this model, answers_as is what its answers call it.
provider "c" {
  base_url   = env("MODELFLARE_C_URL", "http://127.0.0.1:9101/c/v1")
  classifier = classifier.openai
  auth       = "api-key"
  key "main" { secret = env("MODELFLARE_C_KEY", "sim-key") }
  timeouts {
    headers = "20s"
  }
}

provider "claude-a" {
  base_url   = env("MODELFLARE_CLAUDE_A_URL", "http://127.0.0.1:9101/claude-a/v1")
  classifier = classifier.anthropic
  auth       = "x-api-key"
  key "main" { secret = env("MODELFLARE_CLAUDE_A_KEY", "sim-key") }
  timeouts {
    headers = "20s"
  }
}

provider "claude-b" {
  base_url   = env("MODELFLARE_CLAUDE_B_URL", "http://127.0.0.1:9101/claude-b/v1")
  classifier = classifier.anthropic
  auth       = "x-api-key"
  key "main" { secret = env("MODELFLARE_CLAUDE_B_KEY", "sim-key") }
  timeouts {
    headers = "20s"
  }
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]

  channel "a" { provider = provider.a }
  channel "b" { provider = provider.b }
  channel "c" {
    provider   = provider.c
    send_as    = { "gpt-4o-2024-08-06" = "prod-4o" }
    serves     = "gpt-4o-2024-08-06"
    answers_as = ["prod-4o"]
  }
}

route_group "claude" {
  models    = ["claude-sonnet-4-20250514"]
  endpoints = ["anthropic.messages"]

  channel "claude-a" { provider = provider.claude-a }
  channel "claude-b" { provider = provider.claude-b }
}

policy {
  profile = "modelflare"
}

ledger {
  path = env("MODELFLARE_LEDGER", "modelflare.db")
}
