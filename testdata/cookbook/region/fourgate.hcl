# Callers whose data must stay in a region are served there or not at all.
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
  channel "a" {
    provider = provider.a
    labels   = { region = "us" }
  }
  channel "b" {
    provider = provider.b
    labels   = { region = "eu" }
  }
}

caller "clinic" {
  key_sha256 = "593179bf4fae0dbb58f2aaae636d8deb54e00b09318678194b144d43be8e4843" # of key-of-clinic
  groups     = [route_group.gpt-4o]
}

caller "search" {
  key_sha256 = "bf2e9972d8188c1d2c9315c5574b11d8633aa4cdb3a34b3eb6a03a457fcd0e6c" # of key-of-search
  groups     = [route_group.gpt-4o]
}

policy {
  paths  = ["policy.rego"]
  params = { region = { clinic = "eu" } }
}

ledger {
  path = env("COOKBOOK_LEDGER", "cookbook.db")
}
