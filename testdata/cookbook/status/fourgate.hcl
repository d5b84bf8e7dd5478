# Provider a answers 420 when it is busy. No classifier knows that, and its manual says
# that such a request may go elsewhere.
#
# As it stands the file runs against "fourgate sim -listen 127.0.0.1:9101".

server {
  listen       = env("COOKBOOK_LISTEN", "127.0.0.1:8080")
  admin_listen = env("COOKBOOK_ADMIN_LISTEN", "127.0.0.1:8081")
}

provider "a" {
  base_url = env("COOKBOOK_A_URL", "http://127.0.0.1:9101/a/v1")
  key "main" { secret = env("COOKBOOK_KEY", "sim-key") }
}

provider "b" {
  base_url = env("COOKBOOK_B_URL", "http://127.0.0.1:9101/b/v1")
  key "main" { secret = env("COOKBOOK_KEY", "sim-key") }
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  channel "a" { provider = provider.a }
  channel "b" { provider = provider.b }
}

policy {
  paths = ["policy.rego"]
}

ledger {
  path = env("COOKBOOK_LEDGER", "cookbook.db")
}
