print("greenroomd")
