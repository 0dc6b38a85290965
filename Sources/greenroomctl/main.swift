print("greenroomctl")
