# Somebody watches a stream, so it goes to the channel with the fastest first token; a
# whole answer goes to the cheapest one.
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
  strategy  = "cost"
  channel "a" {
    provider = provider.a
    cost     = { input = 1.00, output = 4.00 }
  }
  channel "b" {
    provider = provider.b
    cost     = { input = 2.50, output = 10.00 }
    labels   = { first_token = "fast" }
  }
}

policy {
  paths = ["policy.rego"]
}

ledger {
  path = env("COOKBOOK_LEDGER", "cookbook.db")
}
