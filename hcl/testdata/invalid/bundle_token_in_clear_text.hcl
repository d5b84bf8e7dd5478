provider "openai" {
  base_url = "https://api.openai.com/v1"
  key "main" { secret = env("OPENAI_API_KEY") }
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  channel "openai" { provider = provider.openai }
}

policy {
  bundle {
    url        = "http://policies.example.com/fourgate.tar.gz" # ERROR: Token travels in clear text
    public_key = file("../valid/bundle.pub")
    token      = env("OPENAI_API_KEY")
  }
}
