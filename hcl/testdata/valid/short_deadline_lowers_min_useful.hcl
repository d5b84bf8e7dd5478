provider "openai" {
  base_url = "https://api.openai.com/v1"
  timeouts {
    headers = "500ms"
  }
  key "main" { secret = env("OPENAI_API_KEY") }
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  budget {
    deadline = "1s"
  }
  channel "openai" { provider = provider.openai }
}
