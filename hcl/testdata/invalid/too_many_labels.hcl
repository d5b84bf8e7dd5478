provider "openai" {
  base_url = "https://api.openai.com/v1"
  key "main" { secret = env("OPENAI_API_KEY") }
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  channel "openai" {
    provider = provider.openai
    labels   = { l0 = "x", l1 = "x", l2 = "x", l3 = "x", l4 = "x", l5 = "x", l6 = "x", l7 = "x", l8 = "x", l9 = "x", l10 = "x", l11 = "x", l12 = "x", l13 = "x", l14 = "x", l15 = "x", l16 = "x", l17 = "x", l18 = "x", l19 = "x", l20 = "x", l21 = "x", l22 = "x", l23 = "x", l24 = "x", l25 = "x", l26 = "x", l27 = "x", l28 = "x", l29 = "x", l30 = "x", l31 = "x", l32 = "x" } # ERROR: Too many labels
  }
}
