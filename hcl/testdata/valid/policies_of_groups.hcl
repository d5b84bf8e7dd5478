provider "openai" {
  base_url = "https://api.openai.com/v1"
  key "main" { secret = env("OPENAI_API_KEY") }
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  channel "openai" { provider = provider.openai }
  policy {
    paths = ["policies"]
    query = "data.house.decision"
  }
}

policy {
  bundle {
    url        = "oci://registry.example.com/policies/fourgate:v1"
    public_key = file("bundle.pub")
    token      = env("OPENAI_API_KEY")
    key_id     = "release-2026"
  }
  shadow {
    paths = ["policies"]
  }
}
