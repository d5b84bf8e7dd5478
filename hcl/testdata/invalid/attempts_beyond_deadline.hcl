provider "openai" {
  base_url = "https://api.openai.com/v1"
  timeouts {
    headers = "10s"
  }
  key "main" { secret = env("OPENAI_API_KEY") }
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  budget {
    attempts   = 4 # ERROR: Attempts do not fit the deadline
    deadline   = "300s"
    min_useful = "100s"
  }
  channel "openai" { provider = provider.openai }
}
