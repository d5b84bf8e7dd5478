provider "openai" {
  base_url = "https://api.openai.com/v1"
  key "main" { secret = env("OPENAI_API_KEY") }
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  channel "openai" { provider = provider.openai }
}

state {
  backend = "redis"
  url     = "redis://cache.internal/0?skip_verify=1" # ERROR: Not a backend's URL
}
