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
  url     = "redis://cache-1.internal:6379,cache-2.internal:6379/0" # ERROR: Not a backend's URL
}
