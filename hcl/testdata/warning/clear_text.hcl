provider "openai" {
  base_url = "http://api.openai.com/v1" # WARNING: Keys travel in clear text
  key "main" { secret = env("OPENAI_API_KEY") }
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  channel "openai" { provider = provider.openai }
}
