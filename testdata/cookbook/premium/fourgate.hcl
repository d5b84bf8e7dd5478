# Premium callers may use the whole budget, the others two attempts and half a minute.
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

provider "c" {
  base_url = env("COOKBOOK_C_URL", "http://127.0.0.1:9101/c/v1")
  key "main" { secret = env("COOKBOOK_KEY", "sim-key") }
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  channel "a" { provider = provider.a }
  channel "b" { provider = provider.b }
  channel "c" { provider = provider.c }

  budget {
    attempts  = 3
    per_route = 1
    deadline  = "10m"
  }
}

caller "gold" {
  key_sha256 = "172889bfa7c46ebacf73665c6129e37c0e27e1e343a489a831c4b38f54e6a20f" # of key-of-gold
  groups     = [route_group.gpt-4o]
}

caller "web" {
  key_sha256 = "f6fd5423f17a71f73fa44f82bb0e086716990fbb4208541bd52bf26da0ac74ca" # of key-of-web
  groups     = [route_group.gpt-4o]
}

policy {
  paths  = ["policy.rego"]
  params = { premium = ["gold"] }
}

ledger {
  path = env("COOKBOOK_LEDGER", "cookbook.db")
}
