provider "openai" {
  base_url = "https://api.openai.com/v1"
  key "main" { secret = env("OPENAI_API_KEY") }
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  channel "openai" { provider = provider.openai }
}

caller "team-a" {
  key_sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
  groups     = [route_group.gpt-4o]
}

server {
  listen = "0.0.0.0:8080"
}
