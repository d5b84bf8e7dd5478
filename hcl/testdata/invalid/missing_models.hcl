provider "openai" {
  base_url = "https://api.openai.com/v1"
  key "main" { secret = env("OPENAI_API_KEY") }
}

route_group "gpt-4o" { # ERROR: Missing argument
  endpoints = ["openai.chat"]
  channel "openai" { provider = provider.openai }
}
