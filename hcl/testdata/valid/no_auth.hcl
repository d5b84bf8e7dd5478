provider "openai" {
  base_url = "http://127.0.0.1:11434/v1"
  auth     = "none"
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  channel "openai" { provider = provider.openai }
}
